package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Typed makes a Handler of a function that wants the payload decoded from JSON; an empty payload is T's zero
// value. A payload that is not one JSON value of T, or names a field that T has not, fails the run at once, as
// Permanent: trying again would not mend it.
func Typed[T any](run func(ctx context.Context, o Occurrence, payload T) error) Handler {
	return func(ctx context.Context, o Occurrence) error {
		var v T
		if err := decode(o.Payload, &v); err != nil {
			return Permanent(fmt.Errorf("payload of %d bytes is no %T: %w; mend it where the job is added, or the run was triggered", len(o.Payload), v, err))
		}
		return run(ctx, o, v)
	}
}

func decode(payload []byte, v any) error {
	if len(payload) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the value")
	}
	return nil
}
