module example.com/bad

go 1.26.3

toolchain go1.26.8

replace example.com/good => ../good
