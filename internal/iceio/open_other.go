//go:build !linux

package iceio

import "errors"

// openWritten always sends its caller the long way.
func (t folderTree) openWritten(string) (writtenFolder, error) { return nil, errors.ErrUnsupported }
