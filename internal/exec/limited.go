package exec

import (
	"bytes"
	"errors"
	"fmt"
)

// maxOutput is how much of stdout, and of stderr, Run holds, in bytes: ten times the
// longest that it is used for, the rules of ten thousand services.
const maxOutput = 64 << 20

// ErrOutput is wrapped by the error of a program that was killed because it wrote
// more than this program is ready to hold.
var ErrOutput = errors.New("more output than can be held")

// limited holds what a program writes; end is called once, when that is too much.
type limited struct {
	held bytes.Buffer
	name string
	end  func(error)
}

func (l *limited) Write(p []byte) (int, error) {
	if l.held.Len()+len(p) > maxOutput {
		err := fmt.Errorf("%w: it wrote more than %d MiB to %s", ErrOutput, maxOutput>>20, l.name)
		l.end(err)
		return 0, err
	}
	return l.held.Write(p)
}
