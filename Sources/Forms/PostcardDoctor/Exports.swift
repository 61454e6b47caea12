// `import PostcardDoctor` also imports the forms and problems that explanations are about.
@_exported public import PostcardForm
