package dataplane

import (
	"testing"
)

// TestOVSWaitsForItsTurn: a daemon that is busy is asked again, one that is gone
// is not.
func TestOVSWaitsForItsTurn(t *testing.T) {
	o := OVS{Dir: t.TempDir()}
	ask := func(word string) (string, error) {
		const script = `n=$(cat n 2>/dev/null); n=$((n+1)); echo $n >n; [ $n -gt 2 ] || { echo "database connection failed ($0)" >&2; exit 1; }; cat`
		return o.Run(t.Context(), "flows", "sh", "-c", "cd "+t.TempDir()+"; "+script, word)
	}
	if got, err := ask("Protocol error"); err != nil || got != "flows" {
		t.Errorf("a daemon that is busy twice: %q, %v", got, err)
	}
	_, err := ask("Connection refused")
	if !o.Gone(err) || OVSBusy(err) {
		t.Errorf("a daemon that is gone: %v", err)
	}
}
