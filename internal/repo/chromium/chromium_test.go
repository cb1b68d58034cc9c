package chromium

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestRemoveWaits: a profile that is still written to is removed in the end.
func TestRemoveWaits(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "profile")
	if err := os.MkdirAll(filepath.Join(profile, "Default"), 0o700); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i, begin := 0, time.Now(); time.Since(begin) < 200*time.Millisecond; i++ {
			_ = os.WriteFile(filepath.Join(profile, "Default", strconv.Itoa(i)), nil, 0o600) // fails once the folder is gone
		}
	}()
	if err := remove(profile, time.Minute); err != nil {
		t.Error(err)
	}
	<-done
	if _, err := os.Stat(profile); !os.IsNotExist(err) {
		t.Errorf("the profile is there: %v", err)
	}
}
