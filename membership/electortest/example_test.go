package electortest_test

import (
	"context"
	"fmt"

	"github.com/belfry-go/belfry/membership/electortest"
)

// A test elects a replica, and then nobody.
func ExampleStatic() {
	election := electortest.NewStatic()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	election.Elect("a")
	err := election.For("a").Lead(ctx, func(ctx context.Context, term int64) error {
		fmt.Println("a leads in term", term)
		election.Depose()
		fmt.Println(context.Cause(ctx))
		stop()
		return nil
	})
	fmt.Println("Lead returned", err)
	// Output:
	// a leads in term 1
	// electortest: deposed by the test
	// Lead returned <nil>
}
