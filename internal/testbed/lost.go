package testbed

// LostError tells that a machine of the testbed is gone, and with it every sample
// that needs it, until somebody mends it.
type LostError struct{ Err error }

func (e *LostError) Error() string { return e.Err.Error() }

// Unwrap is what happened to the machine.
func (e *LostError) Unwrap() error { return e.Err }
