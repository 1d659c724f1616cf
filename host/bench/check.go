package main

import "fmt"

// A part of the report ends at its first error, as a test does. check, must and
// must2 end it; they are for the goroutine of the part only.

// failure is the error that a part ends with.
type failure struct{ err error }

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func must2[T, U any](one T, other U, err error) (T, U) {
	check(err)
	return one, other
}

// caught returns the error that f ended with, nil if f returned.
func caught(f func()) (err error) {
	defer func() {
		switch ended := recover().(type) {
		case nil:
		case failure:
			err = ended.err
		default:
			panic(ended)
		}
	}()
	f()
	return nil
}

// named puts a name before an error.
func named(name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// in runs f and puts a name before the error that it ends with.
func in(name string, f func()) { check(named(name, caught(f))) }
