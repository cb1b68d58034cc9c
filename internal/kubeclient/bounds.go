package kubeclient

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// bounds are those of one request to an API server.
type bounds struct {
	within time.Duration // for an answer, to its end
	most   int64         // bytes of the answer
}

// usual are the bounds of every request but those of programs in pods. The pods of ten
// thousand nodes have some hundred MiB.
func usual() bounds { return bounds{within: 20 * time.Second, most: 256 << 20} }

// bounded refuses answers that are longer than the memory of this program should hold.
type bounded struct {
	next http.RoundTripper
	most int64
}

// longestPause is the longest time after which a busy API server may ask to be asked again.
// client-go does that ten times, and waits for as long as the server says, without a limit.
const longestPause = 2 * time.Second

// RoundTrip is next's, with an answer that ends in an error at the bound. One that asks for
// a longer pause is an error at once.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err != nil {
		return answer, err
	}
	const pause = "Retry-After"
	if text := answer.Header.Get(pause); text != "" {
		if seconds, err := strconv.Atoi(text); err != nil || seconds > int(longestPause.Seconds()) {
			answer.Header.Del(pause) // without it client-go does not ask again
		}
	}
	answer.Body = &boundedBody{ReadCloser: answer.Body, left: b.most, most: b.most}
	return answer, nil
}

// WrappedRoundTripper is next: client-go looks there for what can cancel a request.
func (b bounded) WrappedRoundTripper() http.RoundTripper { return b.next }

type boundedBody struct {
	io.ReadCloser
	left, most int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the API server's answer is longer than %d MiB", b.most>>20)
	}
	return n, err
}
