package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/labtest"
)

// Every line that a real run writes is a record as design and schema state it.
func TestRecordsMatchTheirSchema(t *testing.T) {
	t.Parallel()
	labtest.Root(t)
	schema, err := jsonschema.NewCompiler().Compile("../../docs/samples.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	campaign := filepath.Join(t.TempDir(), "c.yaml")
	// One cell that is measured by each kind of workload, one that cannot be
	// built, and an intra-host path.
	text := `name: schema
networks: [host, calico/direct-policy]
paths: [{from: pod, to: pod, placement: inter-host}, {from: pod, to: pod, placement: intra-host}]
workloads:
  - {name: tcp_stream, message_bytes: [1472]}
  - {name: udp_stream, message_bytes: [64], rate_bits_per_second: [1000000]}
  - {name: tcp_rr, message_bytes: [64]}
families: [ipv4, ipv6]
sampling: {slices: 8, seconds: 0.1, warmup_seconds: 0.05, explain_seconds: 0.1, min_blocks: 2, max_blocks: 2}
`
	if err := os.WriteFile(campaign, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "r")
	runner := exec.NewRunner()
	defer runner.Close()
	if _, err := runner.Run(t.Context(), exec.Cmd{
		Argv: []string{filepath.Join(built, "cnibench"), "run", campaign, "--out", out},
		Env:  []string{"CNIBENCH_STATE_DIR=" + filepath.Join(t.TempDir(), "labs")},
	}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(out, "samples.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for line := range strings.Lines(string(data)) {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%v\n%s", err, line)
		}
		seen[value.(map[string]any)["status"].(string)]++
	}
	// 12 cells of IPv4 and 6 of the host's IPv6 in two blocks; 6 of IPv6 that the
	// network does not have, with one record each.
	if seen["ok"]+seen["failed"] < 36 || seen["ok"] == 0 || seen["unsupported"] != 6 {
		t.Errorf("records by status: %v", seen)
	}
}
