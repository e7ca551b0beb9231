package ring

import "fmt"

func ExampleNew() { fmt.Println("a") }

func TestNew() { fmt.Printf("a") }
