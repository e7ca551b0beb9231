package a

type Bare struct{}

func (b *Bare) Do() {}

type hidden struct{}

func (hidden) String() string { return "" }

func New() *Bare { return nil }

// Good has a comment.
type Good interface {
	// Say is described.
	Say()
	Mute()
}

// Group speaks for values.
const (
	One = iota
	Two
)

// Group does not speak for types.
type (
	First int
	// Second has its own.
	Second int
)

var (
	ErrA = 1 // is described
	ErrB = 2
	errC = 3
)

type List[T any] []T

// Len is described.
func (l List[T]) Len() int { return len(l) }

func (l List[T]) Cap() int { return cap(l) }

// Doer is described, and that is what Do does.
type Doer interface{ Do() }
