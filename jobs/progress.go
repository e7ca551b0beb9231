package jobs

import (
	"context"
	"log/slog"
)

type progressKey struct{}

// Progress tells that the attempt gets on, which Job.StallAfter watches, and where it is: the last note is part of what is
// recorded when the attempt fails. It costs little, may be called from several goroutines and as often as one
// likes, and never blocks. Outside a run it does nothing.
func Progress(ctx context.Context, note string) {
	if f, ok := ctx.Value(progressKey{}).(func(string)); ok {
		f(note)
	}
}

// WithProgress returns a context on which Progress calls f, which must not block: for who runs handlers, such as a test of one.
func WithProgress(ctx context.Context, f func(note string)) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

type loggerKey struct{}

// Logger is the logger of the run: each of its lines names the occurrence, its attempt and its fence. Outside a run it is slog.Default.
func Logger(ctx context.Context) *slog.Logger {
	if l, ok := ctx.Value(loggerKey{}).(*slog.Logger); ok {
		return l
	}
	return slog.Default()
}

// WithLogger returns a context on which Logger returns l: for who runs handlers, such as a test of one.
func WithLogger(ctx context.Context, l *slog.Logger) context.Context {
	return context.WithValue(ctx, loggerKey{}, l)
}
