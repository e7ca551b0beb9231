// Package nightly runs the tests of examples/nightly-renewals on a throwaway Postgres. Examples import what their readers
// can, so that their tests cannot start a server: they take the one that DATABASE_URL names.
package nightly
