package sim_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/internal/sim"
)

func TestMain(m *testing.M) {
	sim.Roomy()
	goleak.VerifyTestMain(m)
}
