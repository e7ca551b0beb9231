package main

import (
	"context"
	"fmt"
	"net/url"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// startEtcd starts an etcd of one member in this process, for the reader who has none, and returns its address and how to end it. It
// listens on free ports of the loopback address alone, to anybody on this host, and says nothing.
func startEtcd(ctx context.Context, dir string) (address string, stop func(), err error) {
	free := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c := embed.NewConfig()
	c.Dir = dir
	c.ListenClientUrls, c.AdvertiseClientUrls = free, free
	c.ListenPeerUrls, c.AdvertisePeerUrls = free, free
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	e, err := embed.StartEtcd(c)
	if err != nil {
		return "", nil, fmt.Errorf("etcd: %w", err)
	}
	select {
	case <-e.Server.ReadyNotify():
		return e.Clients[0].Addr().String(), e.Close, nil
	case err = <-e.Err():
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	e.Close()
	return "", nil, fmt.Errorf("etcd: %w", err)
}
