package blind

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { m.Run() }

func TestA(t *testing.T) { goleak.VerifyTestMain(nil) }
