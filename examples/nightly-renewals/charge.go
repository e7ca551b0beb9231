package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// charge is what the provider is asked to take from a customer.
type charge struct {
	Customer string    `json:"customer"`
	Cents    int64     `json:"cents"`
	Night    time.Time `json:"night"`
}

// provider is the payment provider, over HTTP.
type provider struct {
	url, agent string
	client     *http.Client
}

// newProvider asks nothing yet. The agent tells the provider which replica asks, for people to read.
func newProvider(url, agent string) *provider {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 64 // one for each run at a time; the default of 2 dials anew for nearly all
	return &provider{url: url, agent: agent, client: &http.Client{Transport: t, Timeout: 10 * time.Second}}
}

// charge asks for the charge, again and again if need be: under one key the provider charges once. The answer decides
// what an error means. A provider out of reach, busy or broken may do better later; a refusal stays one.
func (p *provider) charge(ctx context.Context, key string, c charge) error {
	body, err := json.Marshal(c)
	if err != nil {
		return jobs.Permanent(fmt.Errorf("provider: %w", err))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/charges", bytes.NewReader(body))
	if err != nil {
		return jobs.Permanent(fmt.Errorf("provider: %w", err))
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("User-Agent", p.agent)
	resp, err := p.client.Do(req)
	if err != nil {
		return fmt.Errorf("provider: %w", err)
	}
	said, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	err = errors.Join(err, resp.Body.Close())
	switch {
	case resp.StatusCode < 300:
		return nil // whatever became of the rest of the answer, the charge is made
	case resp.StatusCode == http.StatusRequestTimeout, resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= 500:
		return errors.Join(fmt.Errorf("provider: %s: %s", resp.Status, bytes.TrimSpace(said)), err)
	default:
		return jobs.Permanent(fmt.Errorf("provider: customer %q: %s: %s", c.Customer, resp.Status, bytes.TrimSpace(said)))
	}
}
