package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// secretAnswer is what the server says once, when it has made a secret.
type secretAnswer struct {
	Principal   principalBody `json:"principal"`
	Credentials struct {
		ClientID     string `json:"clientId"`
		ClientSecret string `json:"clientSecret"`
	} `json:"credentials"`
}

// secretRequest is a request whose answer has a new secret. A nil body sends none.
type secretRequest struct {
	path []string
	body any
}

// newSecret asks for a new secret and shows it, or writes it to a file. more adds flags of the verb's own.
func (c *call) newSecret(ctx context.Context, request func(name string) secretRequest, more ...verbFlags) error {
	var path string
	s, err := c.begin(ctx, 1, append(more, func(_ *connection, fs *flag.FlagSet) {
		fs.StringVar(&path, "write-credential", "", "`file` that ID:SECRET is written to, mode 0600, instead of being shown")
	})...)
	if err != nil {
		return err
	}
	// A file that cannot be written is found before the old secret ends.
	kept, err := openCredentialFile(path)
	if err != nil {
		return err
	}
	defer kept.abandon()
	asked := request(s.args[0])
	var answer secretAnswer
	if err := s.do(ctx, http.MethodPost, asked.path, asked.body, &answer); err != nil {
		return err
	}
	if path == "" {
		return printSecret(c.Out, s.output, answer)
	}
	if err := kept.write(answer.Credentials.ClientID + ":" + answer.Credentials.ClientSecret); err != nil {
		// The server does not tell it again.
		return errors.Join(fmt.Errorf("the credential is shown, because it could not be written: %w", err), printSecret(c.Out, s.output, answer))
	}
	answer.Credentials.ClientSecret = ""
	if s.output == "json" {
		return printJSON(c.Out, map[string]any{"principal": answer.Principal, "credential_file": path})
	}
	return printFields(c.Out, [][2]string{
		{"name", answer.Principal.Name}, {"client id", answer.Credentials.ClientID}, {"credential", path},
	})
}

func printSecret(w io.Writer, output string, s secretAnswer) error {
	if output == "json" {
		return printJSON(w, s)
	}
	return printFields(w, [][2]string{
		{"name", s.Principal.Name}, {"client id", s.Credentials.ClientID},
		{"client secret", s.Credentials.ClientSecret + " (not shown again)"},
	})
}

// credentialFile is a file that a credential will be in: whole, or as it was before. nil: none is wanted.
type credentialFile struct {
	path string
	file *os.File
}

// openCredentialFile makes the new file beside the one that it will replace.
func openCredentialFile(path string) (*credentialFile, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".credential-*") // mode 0600
	if err != nil {
		return nil, fmt.Errorf("a credential cannot be written to %s, nothing was asked for: %w", path, err)
	}
	return &credentialFile{path, file}, nil
}

func (f *credentialFile) write(credential string) error {
	_, err := f.file.WriteString(credential + "\n")
	if err := errors.Join(err, f.file.Sync(), f.file.Close()); err != nil {
		return err
	}
	return os.Rename(f.file.Name(), f.path)
}

// abandon removes what was not put in place.
func (f *credentialFile) abandon() {
	if f != nil {
		_ = f.file.Close()
		_ = os.Remove(f.file.Name())
	}
}
