// PostcardClient
