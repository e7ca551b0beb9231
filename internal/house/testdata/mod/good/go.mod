module example.com/good

go 1.26.0

require golang.org/x/sys v0.49.0 // not a toolchain, go or replace line
