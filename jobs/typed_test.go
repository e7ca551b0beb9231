package jobs

import (
	"context"
	"errors"
	"strings"
	"testing"
)

type bill struct {
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"`
}

// A payload that is not exactly one value of the type fails the run for good, and the function is not called.
func TestTypedIsStrict(t *testing.T) {
	t.Parallel()
	for payload, says := range map[string]string{
		`{"customer":"c","cents":5,"tip":1}`: `unknown field "tip"`,
		`{"customer":7}`:                     "cannot unmarshal number",
		`{"cents":1.5}`:                      "cannot unmarshal number",
		`{"cents":99999999999999999999}`:     "cannot unmarshal number",
		`["c"]`:                              "cannot unmarshal array",
		`{"customer":"c"`:                    "unexpected EOF",
		`{"customer":"c"} {"customer":"d"}`:  "something follows the value",
		`{"customer":"c"}]`:                  "something follows the value",
		`customer=c`:                         "invalid character",
		` `:                                  "EOF",
	} {
		called := false
		run := Typed(func(context.Context, Occurrence, bill) error { called = true; return nil })
		err := run(t.Context(), Occurrence{Payload: []byte(payload)})
		if called || err == nil || !IsPermanent(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: called %t, permanent %t: %v; want it to say %q", payload, called, IsPermanent(err), err, says)
			continue
		}
		if !strings.Contains(err.Error(), "is no jobs.bill") || !strings.Contains(err.Error(), "mend it where the job is added") {
			t.Errorf("%s: %v does not say what to do", payload, err)
		}
	}
}

func TestTyped(t *testing.T) {
	t.Parallel()
	declined := errors.New("declined")
	for payload, want := range map[string]bill{
		"":                                    {},
		"{}":                                  {},
		"null":                                {},
		`{"cents":5,"customer":"c"}`:          {"c", 5},
		" {\"cents\":5,\"customer\":\"c\"}\n": {"c", 5},
	} {
		var got bill
		run := Typed(func(_ context.Context, o Occurrence, b bill) error {
			got = b
			if o.Key != "k" {
				t.Errorf("key %q", o.Key)
			}
			return declined
		})
		if err := run(t.Context(), Occurrence{Key: "k", Payload: []byte(payload)}); !errors.Is(err, declined) || IsPermanent(err) || got != want {
			t.Errorf("%q: %+v, %v; want %+v and the function's own error", payload, got, err, want)
		}
	}
	var ids []int
	run := Typed(func(_ context.Context, _ Occurrence, v []int) error { ids = v; return nil })
	if err := run(t.Context(), Occurrence{Payload: []byte("[1,2]")}); err != nil || len(ids) != 2 {
		t.Errorf("%v, %v", ids, err)
	}
}
