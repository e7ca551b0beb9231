package membership

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPump never holds memberlist up, lets logBurst lines through in each window, and counts the rest.
func TestPump(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var logged syncBuffer
		p := newPump(slog.New(slog.NewTextHandler(&logged, nil)))
		go p.run(t.Context())
		synctest.Wait()
		for range 50 {
			for range 100 {
				for _, level := range []string{"ERR", "DEBUG", "INFO"} {
					if _, err := fmt.Fprintf(p, "[%s] memberlist: say %s\n", level, level); err != nil {
						t.Fatal(err)
					}
				}
			}
			time.Sleep(time.Second)
		}
		s := logged.String()
		if n := strings.Count(s, "say ERR"); n != logBurst {
			t.Errorf("%d lines", n)
		}
		if strings.Contains(s, "DEBUG") || strings.Contains(s, "INFO ") {
			t.Errorf("memberlist's chatter got through: %s", s)
		}
		time.Sleep(logWindow)
		_, _ = fmt.Fprintln(p, "no level")
		synctest.Wait()
		if s := logged.String(); !strings.Contains(s, `text="no level" dropped=`) || strings.Contains(s, `"no level" dropped=0`) {
			t.Errorf("%s", s)
		}
	})
}

// TestPumpSpeaks lets a refusal through however noisy memberlist is, and names members as people do.
func TestPumpSpeaks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var logged syncBuffer
		p := newPump(slog.New(slog.NewTextHandler(&logged, nil)))
		who := func(node string) string {
			if node == "qJIWuS9q388" {
				return "b (boot a8)"
			}
			return ""
		}
		p.who.Store(&who)
		go p.run(t.Context())
		synctest.Wait()
		for range 10 * logBurst {
			_, _ = fmt.Fprintln(p, "[WARN] memberlist: Was able to connect to qJIWuS9q388 over TCP but UDP probes failed, network may be misconfigured")
			_, _ = fmt.Fprintln(p, "[WARN] memberlist: ignoring alive message for 'x': no")
			synctest.Wait()
		}
		p.say("refused a packet")
		synctest.Wait()
		s := logged.String()
		if !strings.Contains(s, "refused a packet") || strings.Count(s, "connect to b (boot a8) over TCP") != logBurst || strings.Contains(s, "ignoring") {
			t.Errorf("%s", s)
		}
	})
}
