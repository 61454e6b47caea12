../../ ../../ Sources / Sending / PostcardQueue / PostcardQueue.docc / Tutorial / Tests / Diary9Tests.swift
