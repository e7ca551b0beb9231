// Package etcdelector elects a leader among replicas by etcd.
package etcdelector

import _ "go.etcd.io/etcd/client/v3/concurrency"
