package kubeclient

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/client-go/rest"
)

// Objects whose types this program does not know are made and read by their paths
// in the API: "/api/v1/namespaces/default/pods".

// Create makes an object in the collection at a path. An existing one is an
// error.
func (c *Client) Create(ctx context.Context, path string, object any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("object for %s: %w", path, err)
	}
	return c.send(ctx, path, "application/json", text)
}

// CreateYAML is Create of a text as people write it.
func (c *Client) CreateYAML(ctx context.Context, path string, text []byte) error {
	return c.send(ctx, path, "application/yaml", text)
}

func (c *Client) send(ctx context.Context, path, kind string, text []byte) error {
	_, err := c.answer(ctx, c.API.Discovery().RESTClient().Post().SetHeader("Content-Type", kind).Body(text), path)
	return c.Explain("make an object in "+path, err)
}

// Get reads what is at a path into out, where that is not nil.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	text, err := c.answer(ctx, c.API.Discovery().RESTClient().Get(), path)
	if err != nil {
		return c.Explain("read "+path, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// answer is that of the API server; its error has the server's own words. Nothing
// is tried again: who waits for something asks for itself, sooner than after the
// second that client-go would wait.
func (c *Client) answer(ctx context.Context, request *rest.Request, path string) ([]byte, error) {
	result := request.MaxRetries(0).AbsPath(path).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}
