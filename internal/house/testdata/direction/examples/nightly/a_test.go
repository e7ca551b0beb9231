package main

import _ "github.com/belfry-go/belfry/internal/sim"
