package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cnibench/cnibench/internal/plain"
)

// apiVersion is that of Docker Engine 20.10, which later ones also have.
const apiVersion = "v1.41"

// dockerSocket is where dockerd listens, in the /run of its own mounts. The machine's
// own Docker does not have the name: until the node's mounts are made, /run is the
// machine's.
const dockerSocket = "/run/cnibench.docker.sock"

// client speaks to the dockerd of one node.
type client struct{ http *http.Client }

// errNoDocker: the node's dockerd does not run, as when its lab is being taken down.
var errNoDocker = errors.New("dockerd does not run")

// openDocker finds the dockerd of a node by the folder of its files.
func openDocker(dir string) (*client, error) {
	text, err := os.ReadFile(filepath.Join(dir, dockerPIDFile))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoDocker, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, dockerPIDFile), err)
	}
	// Its /run is seen through the process.
	socket := fmt.Sprintf("/proc/%d/root%s", pid, dockerSocket)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNoDocker, err)
		}
		return c, nil
	}
	return &client{&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}, nil
}

// dockerError is an answer of dockerd that is no success.
type dockerError struct {
	Call, Message string
	Status        int
}

func (e *dockerError) Error() string {
	return plain.Text(fmt.Sprintf("dockerd: %s: %s (status %d)", e.Call, e.Message, e.Status))
}

// answerLimit bounds what is read of an answer, in bytes.
const answerLimit = 4 << 20

// do makes one call. body is sent as JSON, or as it is where it is a reader; into,
// where not nil, gets the answer.
func (d *client) do(ctx context.Context, method, path string, body, into any) error {
	var sent io.Reader
	kind := "application/json"
	switch b := body.(type) {
	case nil:
	case io.Reader:
		sent, kind = b, "application/x-tar"
	default:
		data, err := json.Marshal(b)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://docker/"+apiVersion+path, sent)
	if err != nil {
		return err
	}
	if sent != nil {
		req.Header.Set("Content-Type", kind)
	}
	res, err := d.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
		return err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, answerLimit))
	if err != nil {
		return fmt.Errorf("dockerd: %s %s: %w", method, path, err)
	}
	if res.StatusCode >= 300 {
		said := struct{ Message string }{}
		if json.Unmarshal(data, &said) != nil || said.Message == "" {
			said.Message = strings.TrimSpace(string(data))
		}
		return &dockerError{Call: method + " " + path, Message: said.Message, Status: res.StatusCode}
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("dockerd: %s %s: its answer: %w", method, path, err)
	}
	return nil
}

// load loads an image.
func (d *client) load(ctx context.Context, image io.Reader) error {
	return d.do(ctx, http.MethodPost, "/images/load?quiet=1", image, nil)
}

// run starts a container in a network and in a network namespace that exists; "" is the
// one that Docker puts it into.
func (d *client) run(ctx context.Context, name, network, namespace string) error {
	config := map[string]any{
		"Image": pauseImage, "HostConfig": map[string]any{"NetworkMode": network, "Runtime": dockerRuntime},
	}
	if namespace != "" {
		config["Env"] = []string{podNamespace + "=" + namespace}
	}
	if err := d.do(ctx, http.MethodPost, "/containers/create?name="+name, config, nil); err != nil {
		return err
	}
	return d.do(ctx, http.MethodPost, "/containers/"+name+"/start", nil, nil)
}

// endpoint is a container's place in a network.
type endpoint struct {
	IPAddress   string
	IPPrefixLen int
	MacAddress  string
}

// container is what dockerd answers about one, as far as it is read.
type container struct {
	State           struct{ Pid int }
	NetworkSettings struct{ Networks map[string]endpoint }
}

func (d *client) inspect(ctx context.Context, name string) (c container, err error) {
	err = d.do(ctx, http.MethodGet, "/containers/"+name+"/json", nil, &c)
	return c, err
}

// process is the number of a container's first process.
func (d *client) process(ctx context.Context, name string) (int, error) {
	c, err := d.inspect(ctx, name)
	if err == nil && c.State.Pid == 0 {
		err = fmt.Errorf("dockerd: container %s does not run", name)
	}
	return c.State.Pid, err
}

// endpoint describes a container's attachment to a network.
func (d *client) endpoint(ctx context.Context, name, network string) (endpoint, error) {
	c, err := d.inspect(ctx, name)
	if err != nil {
		return endpoint{}, err
	}
	e, ok := c.NetworkSettings.Networks[network]
	if !ok {
		return e, fmt.Errorf("dockerd: container %s is not in the network %s", name, network)
	}
	return e, nil
}

// remove kills and removes a container; one that does not exist is no error.
func (d *client) remove(ctx context.Context, name string) error {
	err := d.do(ctx, http.MethodDelete, "/containers/"+name+"?force=1&v=1", nil, nil)
	var said *dockerError
	if errors.As(err, &said) && said.Status == http.StatusNotFound {
		return nil
	}
	return err
}
