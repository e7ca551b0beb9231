package schedulertest

import (
	"context"
	"log/slog"

	"github.com/belfry-go/belfry/scheduler"
)

// gate is a logger's handler that is mute once its process has crashed.
type gate struct {
	slog.Handler
	p *process
}

func (g gate) Enabled(ctx context.Context, l slog.Level) bool {
	return !g.p.crashed.Load() && g.Handler.Enabled(ctx, l)
}

func (g gate) WithAttrs(a []slog.Attr) slog.Handler { return gate{g.Handler.WithAttrs(a), g.p} }

func (g gate) WithGroup(name string) slog.Handler { return gate{g.Handler.WithGroup(name), g.p} }

// gated are hooks that nobody calls once their process has crashed.
func (p *process) gated(h scheduler.Hooks) scheduler.Hooks {
	return scheduler.Hooks{
		Started:  through(p, h.Started),
		Finished: through(p, h.Finished),
		Refused:  through(p, h.Refused),
		Decided:  through(p, h.Decided),
		TakenUp:  through(p, h.TakenUp),
		Hedged:   through(p, h.Hedged),
		Stuck:    through(p, h.Stuck),
		Moved:    through(p, h.Moved),
		Called:   through(p, h.Called),
		Renewed:  through(p, h.Renewed),
		Load:     through(p, h.Load),
		Led:      through(p, h.Led),
		Orphaned: through(p, h.Orphaned),
	}
}

func through[T any](p *process, hook func(context.Context, T)) func(context.Context, T) {
	if hook == nil {
		return nil
	}
	return func(ctx context.Context, v T) {
		if !p.crashed.Load() {
			hook(ctx, v)
		}
	}
}
