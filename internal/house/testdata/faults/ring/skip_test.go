package ring

import (
	"flag"
	"os"
	"testing"
)

const place = "RING_PLACE"

var (
	wanted = flag.Bool("ring.wanted", false, "")
	given  = flag.Int("ring.given", 0, "")
	most   = flag.Int("ring.most", 1, "")
)

func TestSkipped(t *testing.T) { t.Skip("always") }

func TestWanted(t *testing.T) {
	if !*wanted {
		t.Skip("by flag")
	}
}

func TestNamed(t *testing.T) {
	url := os.Getenv(place)
	if len(url) > 9 || url == "" {
		t.Skip("by variable")
	}
}

func TestMaybe(t *testing.T) {
	if *most == 0 || len(os.Args) == 9 {
		t.Skip("hardly")
	}
	if *wanted && *given == 0 {
		t.Skip("not CI")
	}
}

func TestGiven(t *testing.T) {
	if *given == 0 {
		t.Skip("by flag, which CI gives")
	}
}
