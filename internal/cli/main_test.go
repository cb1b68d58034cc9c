package cli

import (
	"errors"
	"testing"
)

// TestSilentError: a status without a message gives way to anything else that
// went wrong.
func TestSilentError(t *testing.T) {
	silent, other := silentError{exitSamplesFailed}, errors.New("the lab is not removed")
	for _, err := range []error{silent, errors.Join(silent, nil), errors.Join(errors.Join(silent), silent)} {
		if got := withoutSilent(err); got != nil {
			t.Errorf("%#v: %v", err, got)
		}
	}
	if got := withoutSilent(errors.Join(errors.Join(silent), other)); !errors.Is(got, other) || errors.As(got, &silent) {
		t.Errorf("%v", got)
	}
}
