package a

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/scheduler/schedulertest"
)

func TestCluster(t *testing.T) {
	schedulertest.Test(t, nil, nil, func(*testing.T, *schedulertest.Cluster) { time.Sleep(time.Hour) })
}
