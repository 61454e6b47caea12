"""Sends a recording, pictures and a document as OpenAI's client does: send_openai.py URL RECORDING PICTURE…"""

import sys
from pathlib import Path

from openai import OpenAI

url, recording, *pictures = sys.argv[1:]
client = OpenAI(base_url=url, api_key="token", max_retries=0)
print(client.audio.transcriptions.create(
    model="gpt-transcribe", file=Path(recording), timestamp_granularities=["word", "segment"]).text)
edited = client.images.edit(model="gpt-image-2", prompt="모자", image=[open(picture, "rb") for picture in pictures])
print(edited.data[0].b64_json)
print(client.files.create(file=Path(recording), purpose="user_data",
                          expires_after={"anchor": "created_at", "seconds": 3600}).filename)
