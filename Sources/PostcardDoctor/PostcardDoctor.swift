// PostcardDoctor
