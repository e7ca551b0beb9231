package ring_test

import (
	"fmt"
	"sync/atomic"

	"github.com/belfry-go/belfry/ring"
)

func ExampleNew() {
	r, err := ring.New([]string{"node-3", "node-1", "node-2"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("members:", r.Members())
	fmt.Println("layout:", r.Layout())
	fmt.Println("owner of customer-42:", r.Owner("customer-42"))
	// Output:
	// members: [node-1 node-2 node-3]
	// layout: r1:4096:200:1.1
	// owner of customer-42: node-2
}

// Bad input is an error that says what to do.
func ExampleNew_refused() {
	_, err := ring.New([]string{"node-1", "node-1"}, nil)
	fmt.Println(err)
	_, err = ring.New([]string{"node-1"}, &ring.Options{Partitions: 271})
	fmt.Println(err)
	// Output:
	// ring: member "node-1": listed twice; give each replica a name of its own
	// ring: Partitions 271: not a power of two from 1 to 65536; use 4096, or 0 for the default
}

// A changing set of members is a new ring each time, published at once to
// readers that never wait for it.
func ExampleRing_Owner() {
	var current atomic.Pointer[ring.Ring]
	for _, members := range [][]string{{"node-1", "node-2", "node-3"}, {"node-1", "node-2"}} {
		r, err := ring.New(members, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		current.Store(r)
		fmt.Println(current.Load().Owner("customer-9"))
	}
	// Output:
	// node-3
	// node-2
}

func ExampleRing_Owners() {
	r, err := ring.New([]string{"node-1", "node-2", "node-3"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("first:", r.Owners("customer-42", 1))
	fmt.Println("in rank:", r.Owners("customer-42", 3))
	// Output:
	// first: [node-2]
	// in rank: [node-2 node-3 node-1]
}

func ExampleSlot() {
	fmt.Println(ring.Slot("customer-42"), ring.Slot("customer-42")%4096)
	// Output:
	// 35855 3087
}

func ExamplePlan() {
	three, err := ring.New([]string{"node-1", "node-2", "node-3"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	four, err := ring.New([]string{"node-1", "node-2", "node-3", "node-4"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	moves := ring.Plan(three, four)
	fmt.Printf("%d of %d partitions move, the first from %s to %s\n",
		len(moves), four.Partitions(), moves[0].From, moves[0].To)
	// Output:
	// 1127 of 4096 partitions move, the first from node-3 to node-4
}
