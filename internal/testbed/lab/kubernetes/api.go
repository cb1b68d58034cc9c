package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// object is one of the API's.
type object = map[string]any

// API speaks to an API server.
type API struct {
	server string
	client *http.Client
}

func newAPI(server string, config *tls.Config) *API {
	return &API{server, &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: 30 * time.Second}}
}

// StatusError is an answer of the API server that is none of success.
type StatusError struct {
	Code          int
	Method, Path  string
	Message, Kind string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("API server: %s %s: %d %s", e.Method, e.Path, e.Code, e.Message)
}

// Create makes an object in the collection at a path. One that is there already
// is an error.
func (a *API) Create(ctx context.Context, path string, o any) error {
	return a.do(ctx, http.MethodPost, path, "application/json", o, nil)
}

// CreateYAML is Create of a text as people write it.
func (a *API) CreateYAML(ctx context.Context, path string, text []byte) error {
	return a.do(ctx, http.MethodPost, path, "application/yaml", text, nil)
}

// Patch merges into the object at a path.
func (a *API) Patch(ctx context.Context, path string, o any) error {
	return a.do(ctx, http.MethodPatch, path, "application/merge-patch+json", o, nil)
}

// Get reads what is at a path into out.
func (a *API) Get(ctx context.Context, path string, out any) error {
	return a.do(ctx, http.MethodGet, path, "", nil, out)
}

// ready tells whether the server is; the error says what it lacks.
func (a *API) ready(ctx context.Context) error { return a.Get(ctx, "/readyz", nil) }

func (a *API) do(ctx context.Context, method, path, kind string, in, out any) (err error) {
	var body io.Reader
	if text, ok := in.([]byte); ok {
		body = bytes.NewReader(text)
	} else if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.server+path, body)
	if err != nil {
		return err
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	res, err := a.client.Do(req)
	if err != nil {
		return fmt.Errorf("API server: %w", err)
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("API server: %s %s: %w", method, path, err)
	}
	if res.StatusCode/100 != 2 {
		return statusError(res.StatusCode, method, path, data)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}

func statusError(code int, method, path string, body []byte) error {
	e := &StatusError{Code: code, Method: method, Path: path, Message: string(body)}
	var status struct{ Message, Reason string }
	if json.Unmarshal(body, &status) == nil && status.Message != "" {
		e.Message, e.Kind = status.Message, status.Reason
	}
	return e
}
