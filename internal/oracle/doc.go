// Package oracle finds the dues of crontab lines by brute force, to judge the
// product by. It imports nothing of this module, and it has one idea only: look
// at the wall clock at every instant and ask whether the line names what it
// shows. The wall clock is what package time says.
//
// When clocks change, the policy is applied word by word. A line whose hour
// field has a *, ? or / in its text fires at each instant whose reading it names.
// Any other line fires once for each reading: in its first pass where the clock
// shows it twice, and at the first instant after the jump where the clock never
// shows it.
//
// It looks at each minute, and at each second of hours in which a clock changes,
// so ten years of twenty lines in one zone take a fifth of a second. It knows no
// H and no interval (@every).
package oracle
