package agent

import (
	"fmt"
	"net/netip"
	"strings"
)

// Newcomer is what a pod's first process reports with.
type Newcomer struct {
	// To is the port of the agent that expects it; Token is the one of the sample, and Name the
	// pod's own.
	To          netip.AddrPort
	Token, Name string
}

// ParseNewcomer reads the flags of cnibench agent --report: "ADDRESS:PORT/TOKEN/NAME".
func ParseNewcomer(text string) (Newcomer, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
		return Newcomer{}, fmt.Errorf("expected ADDRESS:PORT/TOKEN/NAME, found %d parts", len(parts))
	}
	to, err := netip.ParseAddrPort(parts[0])
	return Newcomer{To: to, Token: parts[1], Name: parts[2]}, err
}

// String is what ParseNewcomer reads.
func (p Newcomer) String() string { return fmt.Sprintf("%s/%s/%s", p.To, p.Token, p.Name) }
