// Package etcdservers runs etcd servers inside a test.
package etcdservers

import _ "go.etcd.io/etcd/server/v3/embed"
