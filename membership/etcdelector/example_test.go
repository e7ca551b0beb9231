package etcdelector_test

import (
	"context"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/belfry-go/belfry/membership/etcdelector"
)

func poll(ctx context.Context, term int64) error {
	slog.Info("polls", "term", term)
	return ctx.Err()
}

// One of the replicas that run this program polls, until it is interrupted.
func ExampleElector_Lead() {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:         []string{"https://etcd-1:2379", "https://etcd-2:2379", "https://etcd-3:2379"},
		DialKeepAliveTime: 2 * time.Second, // about Renew: finds connections that are dead
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close() // after Lead
	elector, err := etcdelector.New(client, &etcdelector.Options{Prefix: "belfry/billing"})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err = elector.Lead(ctx, func(ctx context.Context, term int64) error {
		for ctx.Err() == nil { // asked anew before each step
			if err := poll(ctx, term); err != nil {
				return err // resigns
			}
		}
		return nil
	})
	if err != nil {
		log.Print(err) // what to mend
	}
}
