package main

import "log"

func main() { log.Fatal("a") }
