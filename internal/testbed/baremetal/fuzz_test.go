package baremetal

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/cnibench/cnibench/internal/answer"
	"github.com/cnibench/cnibench/internal/labtest/fuzzed"
)

// fuzzLimit bounds an input, bytes.
const fuzzLimit = 64 << 10

// printable reports whether a text can be shown in a terminal.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' })
}

// FuzzFacts: whatever a host answers, its names are ones where nothing is impossible, its
// numbers fit, and the error is printable.
func FuzzFacts(f *testing.F) {
	f.Add("kernel=6.1.0-18-amd64\nuid=0\npython=/usr/bin/python3\ncpus=4\nmemory=16303428\ndevice=eth0\nmtu=1500\nspeed=10000\n")
	f.Add("device={{ lookup('pipe', 'id') }}\nmtu=-1\nfree=9223372036854775807\n")
	f.Add("model=\x1b[2J\nos=\r\xff\nkernel=6.1; id\n")
	f.Fuzz(func(t *testing.T, said string) {
		defer fuzzed.Within(t)()
		if len(said) > fuzzLimit {
			t.Skip("longer than the bound of this test")
		}
		var got facts
		for line := range strings.Lines(said) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			got.take(key, value)
		}
		for _, n := range []int64{int64(got.cpus), got.memoryBytes, got.freeBytes, got.passingBytes, int64(got.mtu), int64(got.deviceMbps)} {
			if n < 0 {
				t.Errorf("a number below zero: %+v", got)
			}
		}
		if !printable(got.cpuModel+got.os) || len(got.cpuModel) > answer.MaxLine+4 || len(got.os) > answer.MaxLine+4 {
			t.Errorf("%+v", got)
		}
		if err := (Host{Name: "a"}).impossible(got); err != nil {
			if !printable(err.Error()) {
				t.Errorf("%q", err)
			}
			return
		}
		if got.device != "" && !answer.Device(got.device) || got.kernel != "" && !answer.Kernel(got.kernel) {
			t.Errorf("taken: %+v", got)
		}
	})
}

// FuzzRecords: of whatever Ansible and the hosts print, each line is a record or part of
// the rest; settings that are taken have names that settings can have; all errors are
// printable.
func FuzzRecords(f *testing.F) {
	f.Add([]byte(`{"event":"ok","host":"left","values":{"sysctl net.ipv4.tcp_sack":"1"},"settings":[{"name":"mtu eth0","asked":"9000","reason":"too large"}]}` + "\n"))
	f.Add([]byte("noise\n" + `{"event":"failed","host":"left","task":"x","msg":{"a":[1]},"module_stderr":"\u001b[2J"}` + "\n"))
	f.Add([]byte(`{"event":"unreachable","host":"right","msg":"No ED25519 host key is known for a;id and you"}`))
	f.Fuzz(func(t *testing.T, out []byte) {
		defer fuzzed.Within(t)()
		if len(out) > fuzzLimit {
			t.Skip("longer than the bound of this test")
		}
		records, rest := parseRecords(out)
		if lines := strings.Count(string(out), "\n") + 1; len(records) > lines || len(rest) > 2*len(out) {
			t.Errorf("%d records and %d bytes of rest in %d lines, %d bytes", len(records), len(rest), lines, len(out))
		}
		if err := failures(records); err != nil && !printable(err.Error()) {
			t.Errorf("%q", err)
		}
		for _, r := range records {
			if r.Event == "" {
				t.Errorf("a record of nothing: %+v", r)
			}
			e := &end{host: Host{Name: "left"}}
			if err := e.read("default_settings", r); err != nil {
				if !printable(err.Error()) {
					t.Errorf("%q", err)
				}
				continue
			}
			for name, v := range e.values {
				if !printable(name+v) || len(v) > answer.MaxLine+4 {
					t.Errorf("taken: %q = %q", name, v)
				}
			}
			for _, s := range e.asked {
				if !printable(s.Name + s.Asked + s.Reason + s.Before + s.Value) {
					t.Errorf("taken: %+v", s)
				}
			}
		}
	})
}

// FuzzUnreachable: whatever ssh and the server's banner say, the error is printable, and
// the command in it is one word for ssh-keyscan.
func FuzzUnreachable(f *testing.F) {
	f.Add("No ED25519 host key is known for [198.18.0.2]:2222 and you have requested strict checking.\r\nHost key verification failed.")
	f.Add("No x host key is known for $(id) and\nHost key verification failed.")
	f.Add("No x host key is known for \x1b[2J and\nHost key verification failed.")
	f.Add("")
	command := regexp.MustCompile(`: ssh-keyscan (-p \d+ )?[A-Za-z0-9_.:%][A-Za-z0-9_.:%-]* >>~/\.ssh/known_hosts\)$`)
	f.Fuzz(func(t *testing.T, said string) {
		defer fuzzed.Within(t)()
		if len(said) > fuzzLimit {
			t.Skip("longer than the bound of this test")
		}
		text := unreachable("a", said).Error()
		if !printable(text) || len(text) > answer.MaxValue+fuzzLimit {
			t.Errorf("%q", text)
		}
		if strings.HasSuffix(text, ">>~/.ssh/known_hosts)") && !command.MatchString(text) {
			t.Errorf("people paste this: %q", text)
		}
	})
}
