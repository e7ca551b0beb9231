package ring

import (
	"fmt"
	"log"
)

func f() string {
	fmt.Println("a")
	log.Fatal(fmt.Errorf("b"))
	_ = log.New(nil, "", log.LstdFlags)
	return fmt.Sprint("c")
}
