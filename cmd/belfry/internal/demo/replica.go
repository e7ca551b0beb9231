package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/fleet"
	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/internal/procs"
	"github.com/belfry-go/belfry/jobs"
)

const (
	jobName = "renewals"
	// callWithin bounds one call of the provider, and so one attempt.
	callWithin = 10 * time.Second
)

// plan is what the replicas are told when all have joined.
type plan struct {
	Nights   []time.Time
	Provider string // URL
	Table    string // of the customers
}

// Replica runs one of the demo's replicas in a child process.
func Replica(ctx context.Context, parent *procs.Parent) error {
	return fleet.Replica(ctx, parent, declare)
}

// declare makes the one job: each night, charge every customer.
func declare(s fleet.Spec, c *storeurl.Client, text []byte, _ func(fleet.Event)) ([]jobs.Job, error) {
	var p plan
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	client := &client{url: p.Provider, replica: s.Name, pid: os.Getpid(), http: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: s.Concurrency},
	}}
	return []jobs.Job{{
		Name:     jobName,
		Schedule: jobs.At(p.Nights...),
		Keys:     book{c, p.Table}.keys(),
		Timeout:  callWithin,
		Run:      client.charge,
	}}, nil
}

// client calls the provider.
type client struct {
	url, replica string
	pid          int
	http         *http.Client
}

// charge renews one customer. The idempotency key is the same whoever makes the call and however often.
func (c *client) charge(ctx context.Context, o jobs.Occurrence) error {
	body, err := json.Marshal(charge{Customer: o.Key, Night: o.Due, Replica: c.replica, Pid: c.pid})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set(keyHeader, o.IdempotencyKey())
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("provider: %s: %s", resp.Status, bytes.TrimSpace(text))
	}
	return nil
}
