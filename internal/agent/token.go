package agent

import (
	"crypto/rand"
	"encoding/hex"
)

// tokenBytes is the length of the secret that data connections of one sample begin with.
const tokenBytes = 16

// NewToken makes such a secret, in hexadecimal digits.
func NewToken() string {
	token := make([]byte, tokenBytes)
	rand.Read(token) // never fails (crypto/rand)
	return hex.EncodeToString(token)
}
