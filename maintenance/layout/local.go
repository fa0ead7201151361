package layout

import (
	"context"
	"fmt"
	"os"
)

// FileInput gives a local file as an input.
func FileInput(path string) (Input, error) {
	facts, err := os.Stat(path)
	if err != nil {
		return Input{}, fmt.Errorf("look at data file: %w", err)
	}
	return Input{Path: path, Size: facts.Size(), Open: func(context.Context) (File, error) { return os.Open(path) }}, nil
}

// CreateFile gives a local file as an output. It must not exist yet but as a left-over of the same name, which is replaced.
func CreateFile(path string) (Output, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create data file: %w", err)
	}
	return localOutput{f}, nil
}

type localOutput struct{ *os.File }

func (o localOutput) Path() string { return o.Name() }

func (o localOutput) Abort() {
	o.File.Close()
	os.Remove(o.Name())
}
