package workload

import (
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
	"github.com/cnibench/cnibench/internal/result"
	"github.com/cnibench/cnibench/internal/unit"
)

// twoHosts are two places with one rank each.
func twoHosts() []MPIHost {
	return []MPIHost{
		{Address: netip.MustParseAddr("10.244.1.2"), Ranks: []int{0}, LocalRanks: []int{0}},
		{Address: netip.MustParseAddr("10.244.2.2"), Ranks: []int{1}, LocalRanks: []int{1}},
	}
}

func netPIPECell(test string, bytes int) result.Cell {
	return result.Cell{Workload: "mpi_netpipe", Test: test, MessageBytes: bytes, Ranks: 2, CPUs: result.CPUsApart}
}

func TestShellWords(t *testing.T) {
	for command, want := range map[string][]string{
		`orted -mca ess "env" -x 'a b' c\ d`: {"orted", "-mca", "ess", "env", "-x", "a b", "c d"},
		`a "b \"c\" \d" ""`:                  {"a", `b "c" \d`, ""},
		"  a\t b ":                           {"a", "b"},
		"":                                   nil,
	} {
		if got, err := shellWords(command); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", command, got, err)
		}
	}
	for _, bad := range []string{`a "b`, `a 'b`, `a\`} {
		if got, err := shellWords(bad); err == nil {
			t.Errorf("%s: %q", bad, got)
		}
	}
}

// The launcher of each MPI names every place, pins the transport to the measured device,
// and runs the program.
func TestMPILaunch(t *testing.T) {
	for test, want := range map[string][]string{
		openMPIName: {"mpirun.openmpi", "--mca btl tcp,self", "--mca btl_tcp_if_include {device}", "--host 10.244.1.2:1,10.244.2.2:1 -np 2 NPopenmpi -l 64 -u 64"},
		ucxName:     {"mpirun.openmpi", "--mca pml ucx", "UCX_TLS=tcp,self,ib", "UCX_NET_DEVICES={device}{rdma}", "UCX_LOG_FILE=stdout", "-np 2 NPopenmpi -l 64 -u 64"},
		mpichName:   {"mpiexec.mpich", "UCX_TLS tcp,self", "UCX_NET_DEVICES {device}", "-np 2 NPmpich2 -l 64 -u 64"},
	} {
		p, err := MPINetPIPE().Launch(Params{Cell: netPIPECell(test, 64)}, twoHosts())
		if err != nil {
			t.Fatal(err)
		}
		line := strings.Join(p.Argv, " ")
		for _, part := range want {
			if !strings.Contains(line, part) {
				t.Errorf("%s: %s has no %q", test, line, part)
			}
		}
		commands := map[string]int{openMPIName: 1, ucxName: 1, mpichName: 2}[test]
		if p.Launch == nil || p.Launch.Commands != commands || p.Launch.Within >= 15*time.Second || !p.OwnPIDs || p.MeasuredAddress != "10.244.1.2" {
			t.Errorf("%s: %+v, %+v", test, p, p.Launch)
		}
	}
	hpcc := result.Cell{Workload: "mpi_hpcc", Ranks: 2, MatrixSize: 100}
	p, err := MPIHPCC().Launch(Params{Cell: hpcc}, twoHosts())
	if err != nil || !strings.Contains(strings.ReplaceAll(p.Argv[len(p.Argv)-1], " ", ""), "\n100N\n") || p.Timeout < time.Minute {
		t.Errorf("%v, %v", p, err)
	}
	huge := hpcc
	huge.MatrixSize = 500_000
	if p, err := MPIHPCC().Launch(Params{Cell: huge}, twoHosts()); err != nil || p.Timeout > 25*time.Hour || p.Timeout < 24*time.Hour {
		t.Errorf("%v, %v", p.Timeout, err)
	}
}

// An estimate of a sample's time follows the work, not the campaign's sampling, and is far from
// the time after which a program is ended.
func TestMPITakes(t *testing.T) {
	before := time.Duration(0)
	for _, n := range []int{100, 1000, 5000, 20_000} {
		cell := result.Cell{Workload: "mpi_hpcc", Ranks: 2, MatrixSize: n}
		took := MPIHPCC().Takes(Params{Cell: cell, Window: time.Minute})
		p, err := MPIHPCC().Launch(Params{Cell: cell}, twoHosts())
		if err != nil || took <= before || 2*took > p.Timeout || took != MPIHPCC().Takes(Params{Cell: cell}) {
			t.Errorf("N %d: %v, the one before %v, the limit %v, %v", n, took, before, p.Timeout, err)
		}
		before = took
	}
	for _, w := range []MPI{MPINetPIPE(), MPIOSU(), MPIIMB()} {
		if took := w.Takes(Params{Cell: result.Cell{Ranks: 2, MessageBytes: 64}}); took < time.Second || took > 10*time.Second {
			t.Errorf("%s: %v", w.Spec().Name, took)
		}
	}
}

func TestMPILaunchIsRefused(t *testing.T) {
	for want, change := range map[string]func(*result.Cell){
		"mpi_netpipe has 2 ranks":         func(c *result.Cell) { c.Ranks = 4 },
		`mpi_netpipe has no test "intel"`: func(c *result.Cell) { c.Test = "intel" },
		"mpi_netpipe needs a message ":    func(c *result.Cell) { c.MessageBytes = 0 },
	} {
		c := netPIPECell(openMPIName, 64)
		change(&c)
		if _, err := MPINetPIPE().Launch(Params{Cell: c}, twoHosts()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := MPIHPCC().Launch(Params{Cell: result.Cell{Ranks: 4}}, twoHosts()); err == nil {
		t.Error("hpcc without a matrix size")
	}
	if _, err := MPIHPCC().Launch(Params{Cell: result.Cell{Ranks: 33, MatrixSize: 100}}, twoHosts()); err == nil || !strings.Contains(err.Error(), "at most 32 ranks") {
		t.Errorf("%v", err)
	}
}

// Launch commands become programs at their places; nothing but the daemon is started.
func TestMPIDaemons(t *testing.T) {
	const orted = `10.244.2.2 orted -mca ess "env" -mca orte_hnp_uri "1.0;tcp://10.244.1.2:4711" -mca plm rsh`
	for _, k := range []struct {
		test     string
		commands []string
		argv     string // of the last daemon
		host     int
		want     string // of the error
	}{
		{test: openMPIName, commands: []string{orted}, host: 1, argv: "orted -mca ess env -mca orte_hnp_uri 1.0;tcp://10.244.1.2:4711 -mca plm rsh"},
		{test: openMPIName, commands: []string{"10.244.2.2 ( test ! -r ./.profile || . ./.profile; /usr/bin/orted -mca ess env )"}, host: 1, argv: "orted -mca ess env"},
		{test: openMPIName, commands: []string{orted, orted}, want: "a second one for this place"},
		{test: openMPIName, commands: []string{"10.244.1.2 orted"}, want: "is none of the other places"},
		{test: openMPIName, commands: []string{"192.0.2.1 orted"}, want: "is none of the other places"},
		{test: openMPIName, commands: []string{"10.244.2.2 rm -rf /"}, want: "it does not start orted"},
		{test: openMPIName, commands: []string{""}, want: "it is empty"},
		{test: openMPIName, commands: []string{`10.244.2.2 orted "`}, want: "a quote is not closed"},
		{test: mpichName, commands: []string{"/usr/bin/hydra_pmi_proxy --control-port 10.244.1.2:4711 --proxy-id 0", "/usr/bin/hydra_pmi_proxy --control-port 10.244.1.2:4711 --proxy-id 1"},
			host: 1, argv: "hydra_pmi_proxy --control-port 10.244.1.2:4711 --proxy-id 1"},
		{test: mpichName, commands: []string{"/usr/bin/hydra_pmi_proxy --proxy-id 2"}, want: `"2" is none of 2 places`},
		{test: mpichName, commands: []string{"/usr/bin/hydra_pmi_proxy --proxy-id"}, want: "it has no --proxy-id"},
		{test: mpichName, commands: []string{"sh -c id"}, want: "it does not start hydra_pmi_proxy"},
	} {
		got, err := MPINetPIPE().Daemons(Params{Cell: netPIPECell(k.test, 64)}, twoHosts(), k.commands)
		if k.want != "" {
			if err == nil || !strings.Contains(err.Error(), k.want) {
				t.Errorf("%q: %v, want %q", k.commands, err, k.want)
			}
			continue
		}
		if err != nil || len(got) != len(k.commands) {
			t.Errorf("%q: %v, %v", k.commands, got, err)
			continue
		}
		last := got[len(got)-1]
		if line := strings.Join(last.Program.Argv, " "); last.Host != k.host || line != k.argv || !last.Program.OwnPIDs || last.Program.MeasuredAddress != "10.244.2.2" {
			t.Errorf("%+v, want %s", last, k.argv)
		}
	}
}

// netPIPEText is what NetPIPE prints of one size.
const netPIPEText = "0: node\n1: node\nNow starting the main loop\n  0:    1024 bytes   2500 times -->    312.50 Mbps in      25.00 usec\n"

func TestNetPIPE(t *testing.T) {
	p := Params{Cell: netPIPECell(mpichName, 1024)}
	m, err := parseNetPIPE(p, Output{Stderr: netPIPEText})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"message_time_seconds": 25e-6, "throughput_bits_per_second": 8192 / 25e-6, "messages": 2500} {
		if got := m.Metrics[name]; math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
	if math.Abs(m.MeasuredSeconds-0.125) > 1e-9 {
		t.Errorf("%g s", m.MeasuredSeconds)
	}
	sent, err := netPIPESent(p, Output{Stderr: netPIPEText})
	if err != nil || sent[[2]int{0, 1}] != 3*2500*1024 || sent[[2]int{1, 0}] != 3*2500*1024 {
		t.Errorf("%v, %v", sent, err)
	}
	for _, k := range []struct{ old, new, want string }{
		{"Mbps", "Gbps", `unknown units "Gbps" and "usec"`},
		{"usec", "msec", `unknown units "Mbps" and "msec"`},
		{"1024 bytes", "1025 bytes", "messages of 1025 bytes where 1024 were asked for"},
		{"312.50", "327.68", "Mbps are not 1024 bytes in 25 µs"}, // of 10^6 bits
		{"2500 times", "0 times", "0 messages"},
		{"25.00", "0.00", "in 0 µs"},
		{"25.00", "2.5.00", "is no number"},
		{" in ", " ", "0 lines"},
		{"  0:", "  0:       8 bytes   2500 times -->      2.44 Mbps in      25.00 usec\n  1:", "2 lines"},
	} {
		text := strings.ReplaceAll(netPIPEText, k.old, k.new)
		if _, err := parseNetPIPE(p, Output{Stderr: text}); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %v, want %q", k.new, err, k.want)
		}
	}
}

// recorded is a file of testdata/mpi.
func recorded(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "mpi", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Output that was recorded in the lab is read.
func TestRecordedNetPIPE(t *testing.T) {
	for test, name := range map[string]string{openMPIName: "netpipe-3.7.2-openmpi-4.1.4.stderr", mpichName: "netpipe-3.7.2-mpich-4.0.2.stderr"} {
		text := recorded(t, name)
		m, err := parseNetPIPE(Params{Cell: netPIPECell(test, 1024)}, Output{Stderr: text})
		if err != nil || m.Metrics["message_time_seconds"] < 1e-6 || m.Metrics["message_time_seconds"] > 1e-2 {
			t.Errorf("%s: %v, %v", name, m, err)
		}
		if test == mpichName {
			continue
		}
		sent, err := openMPISent(Output{Stderr: text})
		// The trials, the messages before them that NetPIPE chooses their number by, and its
		// synchronisation.
		least := netPIPETrials * m.Metrics["messages"] * 1024
		if err != nil || sent[[2]int{0, 1}] < least || sent[[2]int{1, 0}] < least {
			t.Errorf("%v, %v, want at least %g", sent, err, least)
		}
	}
}

func hpccCell(n int) result.Cell {
	return result.Cell{Workload: "mpi_hpcc", Ranks: 4, RanksPerNode: 2, MatrixSize: n}
}

// recordedHPCC and recordedN are hpcc's output as recorded in the lab.
const (
	recordedHPCC = "hpcc-1.5.0-openmpi-4.1.4.stdout"
	recordedN    = 200
)

func TestHPCC(t *testing.T) {
	text := recorded(t, recordedHPCC)
	p := Params{Cell: hpccCell(recordedN)}
	m, err := parseHPCC(p, Output{Stdout: text})
	if err != nil {
		t.Fatal(err)
	}
	values, err := hpccSummary(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range hpccValues() {
		if m.Metrics[v.metric] <= 0 {
			t.Errorf("%s is %g, of %q", v.metric, m.Metrics[v.metric], values[v.line])
		}
		named, _ := unit.FindMetric(v.metric)
		if named.Better == unit.Neither || named.Unit == "" {
			t.Errorf("%s: %+v", v.metric, named)
		}
	}
	line := func(name string) string { return "\n" + name + "=" + values[name] + "\n" }
	for _, k := range []struct{ old, new, want string }{
		{line("HPL_Tflops"), "\nHPL_Gflops=1\n", "HPL_Tflops is missing"},
		{line("HPL_Tflops"), "\nHPL_Tflops=0\n", "no measured value"},
		{line("HPL_Tflops"), "\nHPL_Tflops=NaN\n", "no measured value"},
		{line("HPL_Tflops"), "\nHPL_Tflops=1e999\n", "no measured value"},
		{line("HPL_N"), "\nHPL_N=201\n", "HPL_N is"},
		{line("HPL_N"), line("HPL_N") + "HPL_N=200\n", "HPL_N occurs twice"},
		{line("CommWorldProcs"), "\nCommWorldProcs=2\n", "CommWorldProcs is"},
		{line("CommWorldProcs"), "\nCommWorldProcs=1\n", "each rank was a job of its own: hpcc is linked with another MPI"},
		{line("Success"), "\nSuccess=0\n", "Success is"},
		{line("MaxPingPongLatency_usec"), "\nMaxPingPongLatency_msec=1\n", "MaxPingPongLatency_usec is missing"},
		{"PASSED", "FAILED", "a residual check failed"},
		{"Begin of Summary", "Begin of summary", "it has no summary"},
		{"End of Summary section.", "", "its summary is cut off"},
	} {
		if !strings.Contains(text, k.old) {
			t.Errorf("no %q to edit", k.old)
		}
		if _, err := parseHPCC(p, Output{Stdout: strings.Replace(text, k.old, k.new, 1)}); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%q: %v, want %q", k.new, err, k.want)
		}
	}
}

func TestHPCCGrid(t *testing.T) {
	for ranks, want := range map[int][2]int{1: {1, 1}, 2: {1, 2}, 4: {2, 2}, 6: {2, 3}, 7: {1, 7}, 12: {3, 4}, 16: {4, 4}} {
		if rows, columns := hpccGrid(ranks); rows != want[0] || columns != want[1] {
			t.Errorf("%d ranks: %d × %d", ranks, rows, columns)
		}
	}
}

// What MPI sent is compared with what the devices sent.
func TestMPIAccount(t *testing.T) {
	device := func(sent float64) Output { return Output{Device: &Device{Name: "eth0", SentBytes: sent}} }
	sent := mpiBytes{{0, 1}: 1000, {1, 0}: 900}
	m := Measurement{Metrics: map[string]float64{}}
	if err := m.account(sent, twoHosts(), []Output{device(1100), device(950)}); err != nil || m.Metrics["mpi_sent_bytes"] != 1900 || m.Metrics["device_sent_bytes"] != 2050 {
		t.Errorf("%v, %v", m.Metrics, err)
	}
	other := device(2000)
	other.Device.Name = "eth1"
	for want, k := range map[string]struct {
		sent    mpiBytes
		outputs []Output
	}{
		"MPI sent 900 bytes from 10.244.2.2 to other places, and device eth0 only 100": {sent, []Output{device(1100), device(100)}},
		"MPI counted no message from 10.244.2.2":                                       {mpiBytes{{0, 1}: 1}, []Output{device(1100), device(100)}},
		"the bytes of the device with 10.244.2.2 were not counted":                     {sent, []Output{device(1100), {}}},
		"the measured device is eth0 at 10.244.1.2 and eth1 at 10.244.2.2":             {sent, []Output{device(1100), other}},
		"from rank 0 to rank 2, and there are 2 ranks":                                 {mpiBytes{{0, 2}: 1}, []Output{device(1100), device(1100)}},
	} {
		m := Measurement{Metrics: map[string]float64{}}
		if err := m.account(k.sent, twoHosts(), k.outputs); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// Ranks that share a place send nothing over its device.
	one := []MPIHost{{Address: netip.MustParseAddr("198.18.0.1"), Ranks: []int{0, 1}}}
	m = Measurement{Metrics: map[string]float64{}}
	if err := m.account(sent, one, []Output{device(0)}); err != nil || len(m.Warnings) != 1 || m.Metrics["mpi_sent_bytes"] != 0 {
		t.Errorf("%v, %+v", err, m)
	}
}

// Lines of ranks may run into each other.
func TestOpenMPISent(t *testing.T) {
	const text = "# POINT TO POINT\nE\t0\t1\t1000 bytes\t10 msgs sent\tE\t1\t0\t900 bytes\t9 msgs sent\t0,0,1\n0,1,2\nE\t1\t1\t7 bytes\t1 msgs sent\t1\n"
	sent, err := openMPISent(Output{Stderr: text})
	if err != nil || len(sent) != 2 || sent[[2]int{0, 1}] != 1000 || sent[[2]int{1, 0}] != 900 {
		t.Errorf("%v, %v", sent, err)
	}
	if _, err := openMPISent(Output{Stderr: "nothing\n"}); err == nil || !strings.Contains(err.Error(), "pml_monitoring") {
		t.Errorf("%v", err)
	}
}

// A job that failed has the launcher's last words, or those of a daemon.
func TestMPIFailures(t *testing.T) {
	p := Params{Cell: netPIPECell(openMPIName, 1024)}
	good := Output{Argv: []string{"orted"}}
	for want, outputs := range map[string][]Output{
		"mpirun (launcher) did not end in time (the job did not begin): no route": {{Argv: []string{"mpirun"}, Killed: "the job did not begin", Stdout: openMPILaunch + "x\n", Stderr: "no route\n-----\n"}, good},
		"mpirun (launcher) ended with status 137: rank 1 exited on signal 9":      {{Argv: []string{"mpirun"}, ExitCode: 137, Stderr: "-----\nrank 1 exited on signal 9\n-----\n"}, good},
		"orted (daemon at 10.244.2.2) was ended by a signal":                      {{Argv: []string{"mpirun"}, ExitCode: 205, Stderr: "no-path\n"}, {Argv: []string{"orted"}, ExitCode: -1}},
		"orted (daemon at 10.244.2.2) ended with status 1: no library":            {{Argv: []string{"mpirun"}}, {Argv: []string{"orted"}, ExitCode: 1, Stderr: "no library\n"}},
		"mpi_netpipe (version unknown): its output is not understood: it has 0":   {{Argv: []string{"mpirun"}}, good},
		"1 of 2 places": {good},
	} {
		if _, err := MPINetPIPE().ParseJob(p, twoHosts(), outputs); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func FuzzNetPIPE(f *testing.F) {
	f.Add(netPIPEText)
	f.Add(strings.ReplaceAll(netPIPEText, "1024", "99999999999"))
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzed.Within(t)()
		m, err := parseNetPIPE(Params{Cell: netPIPECell(mpichName, 1024)}, Output{Stderr: text})
		sound(t, m, err)
		if sent, err := openMPISent(Output{Stderr: text}); (err == nil) != (len(sent) > 0) {
			t.Errorf("%v, %v", sent, err)
		}
	})
}

func FuzzHPCC(f *testing.F) {
	f.Add(recorded(f, recordedHPCC))
	f.Add("Begin of Summary section.\nSuccess=1\nEnd of Summary section.\n")
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzed.Within(t)()
		m, err := parseHPCC(Params{Cell: hpccCell(recordedN)}, Output{Stdout: text})
		sound(t, m, err)
	})
}

func FuzzShellWords(f *testing.F) {
	f.Add(`orted -mca ess "env" 'a b' c\ d`)
	f.Fuzz(func(t *testing.T, command string) {
		defer fuzzed.Within(t)()
		words, err := shellWords(command)
		if err == nil && len(strings.Join(words, "")) > len(command) {
			t.Errorf("%q of %q", words, command)
		}
	})
}

// sound checks that what was read has known names and finite values.
func sound(t *testing.T, m Measurement, err error) {
	t.Helper()
	if err != nil {
		return
	}
	for name, v := range m.Metrics {
		if _, known := unit.FindMetric(name); !known || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			t.Errorf("%s is %g", name, v)
		}
	}
	if !(m.MeasuredSeconds > 0) || math.IsInf(m.MeasuredSeconds, 0) {
		t.Errorf("%g s", m.MeasuredSeconds)
	}
}
