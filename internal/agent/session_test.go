package agent

import (
	"errors"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/cnibench/cnibench/internal/exec"
	"github.com/cnibench/cnibench/internal/workload"
)

// A serving half that became ready after the cancel was in the next sample's map
// for as long as the agent lived.
func TestServeAfterACancelIsNotKept(t *testing.T) {
	s := &server{runner: exec.NewRunner(), scratch: &scratch{}, roots: machineRoots(nil), versions: map[string]string{}}
	defer s.runner.Close()
	s.fresh()
	life := s.life
	s.fresh() // as cancelAll does while the half becomes ready
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	p := workload.Program{Argv: []string{forAnybody(t), "listen", strconv.Itoa(int(port))}, Timeout: time.Minute}
	if _, err := s.serve(life, ServeParams{Program: p, Port: port}); !errors.Is(err, errOver) {
		t.Errorf("serve: %v, want %v", err, errOver)
	}
	if len(s.sessions) > 0 {
		t.Errorf("%d sessions are kept", len(s.sessions))
	}
	l, err := net.Listen("tcp", ":"+strconv.Itoa(int(port)))
	if err != nil {
		t.Fatalf("its port is taken: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
