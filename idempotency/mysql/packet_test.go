package mysql

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/testservers"
)

// Batches of the largest names and texts that there are go through a server that takes the smallest packets a store opens
// with, in as many statements as it needs; a text that does not fit into the client's is refused, and its setting named.
func TestSmallPackets(t *testing.T) {
	t.Parallel()
	server := testservers.StartMariaDB(t, testservers.Options{})
	d := server.Database(t)
	admin := client(t, d, "")
	limit := func(bytes int) {
		t.Helper()
		if _, err := admin.Exec(fmt.Sprintf("SET GLOBAL max_allowed_packet = %d", bytes)); err != nil {
			t.Fatal(err)
		}
	}
	limit(leastPacket)
	w := newWorker(t, openOn(t, client(t, d, ""), nil))
	c := make([]idempotency.Claim, idempotency.MaxBatch)
	for i := range c {
		c[i] = w.insert(fmt.Sprintf("%0255d", i))
		c[i].ID.Request = fmt.Sprintf("%0255d", i)
	}
	won, err := w.claim(context.Background(), c...)
	if err != nil {
		t.Fatalf("claims: %v", err)
	}
	f := make([]idempotency.Finish, 40)
	for i := range f {
		f[i] = idempotency.Finish{ID: c[i].ID, Fence: won[i].Fence, Outcome: idempotency.Failed, Attempt: 1, Text: fmt.Sprintf("%065536d", i)}
	}
	answers, err := w.Finish(context.Background(), "ns", f)
	if err != nil {
		t.Fatalf("finishes: %v", err)
	}
	for i := range answers {
		if answers[i] != idempotency.Finished || won[i].Verdict != idempotency.Won {
			t.Fatalf("claim and finish %d: %+v and %d", i, won[i], answers[i])
		}
	}
	lost, err := w.claim(context.Background(), c...)
	if err != nil || lost[0].Verdict != idempotency.Taken {
		t.Fatalf("claims once more: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w = w.beside(t, openOn(t, client(t, d, "?maxAllowedPacket=60000"), nil))
	last := idempotency.Finish{ID: c[99].ID, Fence: won[99].Fence, Outcome: idempotency.Failed, Attempt: 1, Text: strings.Repeat("x", 64<<10)}
	_, err = w.Finish(ctx, "ns", []idempotency.Finish{last})
	if err == nil || !strings.Contains(err.Error(), "maxAllowedPacket") {
		t.Errorf("a text that is larger than the client's packet: %v; want its parameter named", err)
	}
	last.Text = ""
	if answers, err := w.Finish(ctx, "ns", []idempotency.Finish{last}); err != nil || answers[0] != idempotency.Finished {
		t.Errorf("the same without the text: %v %v", answers, err)
	}
}
