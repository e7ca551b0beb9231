package membership_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/belfry-go/belfry/membership"
)

// Two replicas on one host: the second calls the first, and both see both as owners once they serve.
func ExampleJoin() {
	ctx := context.Background()
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	a, err := membership.Join(ctx, membership.Config{Name: "a", Namespace: "billing", Logger: logger})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	b, err := membership.Join(ctx, membership.Config{Name: "b", Namespace: "billing", Seeds: []string{a.Addr()}, Logger: logger})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()

	for _, c := range []*membership.Cluster{a, b} {
		if err := c.Announce(ctx, "serving", "layout-1", "", nil); err != nil {
			fmt.Println(err)
			return
		}
	}
	for _, c := range []*membership.Cluster{a, b} {
		owners, changed := c.Watch()
		for len(owners) < 2 {
			<-changed
			owners, changed = c.Watch()
		}
		fmt.Println(c.Self(), "sees", owners)
	}
	// Output:
	// a sees [a b]
	// b sees [a b]
}

// One process alone needs no gossip.
func ExampleNewStatic() {
	owners, _ := membership.NewStatic("a").Watch()
	fmt.Println(owners)
	// Output: [a]
}

// A pod: reached at its own address, and found by a headless service's name. The key is a secret's file.
func ExampleConfig_kubernetes() {
	key := make([]byte, 32) // os.ReadFile("/etc/billing/gossip.key")
	config := membership.Config{
		Namespace: "billing",
		Bind:      "0.0.0.0:7946",
		Advertise: os.Getenv("POD_IP"),
		Seeds:     []string{"billing-gossip:7946"},
		Secrets:   [][]byte{key}, // the file's 32 bytes
	}
	fmt.Println(config.Seeds)
	// Output: [billing-gossip:7946]
}
