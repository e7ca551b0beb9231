package storeurl

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/internal/testservers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testservers.Main(m)) }
