../../ ../../ Sources / Sending / PostcardQueue / PostcardQueue.docc / Tutorial / Steps / Diary8Uploads.swift
